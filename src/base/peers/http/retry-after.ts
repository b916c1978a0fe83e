/** The longest wait that a peer may ask for: an hour. */
const maxRetryAfterMs = 3_600_000;
const imfDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** How long a peer's `Retry-After` asks us to wait, an hour at most; undefined when it asks for nothing readable. */
export function readRetryAfterMs(header: string | string[] | undefined): number | undefined {
  const waitMs = typeof header === 'string' ? readWaitMs(header) : undefined;
  return waitMs === undefined ? undefined : boundedWaitMs(waitMs);
}

/** The granted part of a wait that a peer asked for. */
export function boundedWaitMs(waitMs: number): number {
  return Math.min(Math.max(waitMs, 0), maxRetryAfterMs);
}

/** Seconds, or the one date form that senders may still generate; Date.parse alone takes far more. */
function readWaitMs(header: string): number | undefined {
  if (/^\d{1,10}$/.test(header)) return Number(header) * 1000;
  const at = imfDate.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? undefined : at - Date.now();
}
