/** The process that `measureTable` asks: answers at once, as a table in it would at best. */
process.on("message", () => process.send?.({ allowed: true, remaining: 41, retryAfterMs: 0 }));
