import process from 'node:process';

const lineEveryMs = 5_000;
const drawEveryMs = 100;
const barChars = 30;

/** Prints the progress of a long operation on standard error: a bar on a terminal, else a line every few seconds. */
export interface Progress {
  at(what: string, done: bigint, all: bigint): void;
  end(): void;
}

export function startProgress(): Progress {
  const { stderr } = process;
  let toldMs = stderr.isTTY ? 0 : performance.now();
  let isDrawn = false;
  return {
    at(what, done, all) {
      const nowMs = performance.now();
      if (nowMs - toldMs < (stderr.isTTY ? drawEveryMs : lineEveryMs)) return;
      toldMs = nowMs;
      const share = all === 0n ? 1 : Number((done * 1_000n) / all) / 1_000;
      const words = `${what}: ${done} of ${all} blocks`;
      if (!stderr.isTTY) return void stderr.write(`${words}\n`);
      const full = Math.round(share * barChars);
      stderr.write(`\r\u001b[K[${'#'.repeat(full)}${'.'.repeat(barChars - full)}] ${words}`);
      isDrawn = true;
    },
    end() {
      if (isDrawn) stderr.write('\r\u001b[K');
    },
  };
}
