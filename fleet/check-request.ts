/** The bytes of one `POST /v1/check`, made once and sent many times. */
export function checkRequest(limit: string, key: string): string {
  const body = JSON.stringify({ limit, key });
  return (
    "POST /v1/check HTTP/1.1\r\nHost: aliquot\r\nContent-Type: application/json\r\n" +
    `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${escaped(body)}`
  );
}

/** Requests are written as Latin-1: one character for each byte of the UTF-8 text. */
function escaped(text: string): string {
  return Buffer.from(text).toString("latin1");
}
