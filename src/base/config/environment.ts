/** Environment variables, as every reader of them receives them: an argument, so tests need no real ones. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The process's own environment. Only the command line calls this; everything else gets it as an argument. */
export function processEnvironment(): Environment {
  // oxlint-disable-next-line node/no-process-env -- the one place that reads it
  return process.env;
}
