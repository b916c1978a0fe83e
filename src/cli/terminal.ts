/** Lets a command end quietly where its reader has left, as in `tollbook calls dead | head -1`: what it would say is dropped. */
export function outlastReaders(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
}

/** Prints a command's result on standard output. */
export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints an error, or a note that is not part of the result, on standard error. */
export function fail(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Resolves at the first SIGINT or SIGTERM and ignores later ones: npm delivers Ctrl-C twice, and the second must not interrupt the shutdown. */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve(signal));
  });
}
