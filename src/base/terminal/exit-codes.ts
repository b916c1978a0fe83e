declare const ofTheTable: unique symbol;

/** An exit code of the table below. A plain number has another type, so a command cannot return a code that the table does not have. */
export type ExitCode = number & { readonly [ofTheTable]: true };

const code = (number: number): ExitCode => number as ExitCode;

/** The exit codes of every command: the one table. docs/finance/README.md has it for those who run them. */
export const exitCodes = {
  /** Done, and nothing is wrong. */
  done: code(0),
  /** The command found a fault in its data: a break that no operator has explained, or tampering. */
  finding: code(1),
  /** Could not be done, for example with wrong arguments or without the database. Standard error names the reason and the next step. */
  notDone: code(2),
  /** There are breaks, and each is explained. */
  explained: code(3),
  /**
   * The configuration has mistakes. Only of the commands that serve, which systemd must not start again with the same configuration
   * (deploy/systemd/tollbook.service), and of the one that checks it for them. From every other command a wrong configuration is `notDone`.
   */
  wrongConfiguration: code(78),
} as const;

/** What the codes that only some commands have mean for one of them. */
export type OwnExits = Readonly<Partial<Record<'finding' | 'explained' | 'wrongConfiguration', string>>>;

/** What a command's help says of its exit codes. */
export function exitLines(own: OwnExits = {}): string[] {
  const lines = exitMeanings(own).map(([number, meaning]) => `  ${String(number).padEnd(4)}${meaning}`);
  return ['exit codes:', ...lines];
}

/** The exit codes of a command: those of every command, and its own. */
export function exitMeanings({ finding, explained, wrongConfiguration }: OwnExits): [ExitCode, string][] {
  const meanings: readonly (readonly [ExitCode, string | undefined])[] = [
    [exitCodes.done, 'done'],
    [exitCodes.finding, finding],
    [exitCodes.notDone, 'could not be done: standard error says why'],
    [exitCodes.explained, explained],
    [exitCodes.wrongConfiguration, wrongConfiguration],
  ];
  return meanings.flatMap(([number, meaning]) => (meaning === undefined ? [] : [[number, meaning]]));
}
