/** A draw in [0, 1) that is the same for the same pod and key and spread over pods. */
export function fixedDraw(podId: string, key: string): number {
  let hash = 0x9e3779b9;
  const text = `${podId}\0${key}`;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x85ebca6b);
    hash ^= hash >>> 13;
  }
  return (hash >>> 0) / 2 ** 32;
}
