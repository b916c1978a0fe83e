/** What a command tells a person. Logs go elsewhere. */
export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function fail(text: string): void {
  process.stderr.write(`${text}\n`);
}

/**
 * Resolves at the first SIGINT or SIGTERM. Later ones are swallowed: npm delivers Ctrl-C twice, and what is being
 * finished must not be cut off by the second.
 */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve(signal));
  });
}
