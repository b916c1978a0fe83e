/**
 * Loaded into a gateway before anything else (`--import`): its clock is ahead of the machine's by the seconds in a file.
 * Timers go on as usual, as they do on a machine whose clock is set.
 */
import { readFileSync } from 'node:fs';

// oxlint-disable-next-line node/no-process-env -- its own file, loaded before the program
const file = process.env.CHAOS_CLOCK_FILE;
const readEveryMs = 20;
const realNow = Date.now;
let offsetMs = 0;

function read() {
  try {
    offsetMs = Number(readFileSync(file, 'utf8')) * 1_000 || 0;
  } catch {
    // no step yet
  }
}
read();
setInterval(read, readEveryMs).unref();

globalThis.Date = class extends Date {
  constructor(...args) {
    if (args.length === 0) super(realNow() + offsetMs);
    else super(...args);
  }
  static now() {
    return realNow() + offsetMs;
  }
};
