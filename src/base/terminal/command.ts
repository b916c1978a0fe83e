import type { parseArgs, ParseArgsOptionDescriptor } from 'node:util';
import { exitLines, exitMeanings, type OwnExits } from './exit-codes.ts';

/** An option as parseArgs of node:util reads it, with its help text. */
interface Option extends ParseArgsOptionDescriptor {
  /** Names its value; absent for a flag. */
  readonly value?: string;
  /** Text after a line break is aligned with the text before it. */
  readonly help: string;
}

export type Options = Readonly<Record<string, Option>>;

/** What a command is and takes. Its help and the reading of its arguments both follow from this. */
export interface CommandDescription {
  readonly summary: string;
  /** What has to be given, for each way to call the command: arguments without a name first. */
  readonly forms?: readonly string[];
  readonly options?: Options;
  readonly notes?: readonly string[];
  /** It needs none, or its notes say when it does. */
  readonly noDatabase?: true;
  /** It works with the reader's role of the database. */
  readonly isReading?: true;
  /** The exit codes that not every command has. */
  readonly exits?: OwnExits;
}

/** The values of a command's options. */
export type ValuesOf<Described extends { readonly options: Options }> = ReturnType<
  typeof parseArgs<{ options: Described['options'] }>
>['values'];

export const text = (value: string, help: string) => ({ type: 'string', value, help }) as const;

/** With the value that counts where it is not given. */
export const textOr = (value: string, fallback: string, help: string) =>
  ({ type: 'string', value, default: fallback, help }) as const;

/** Any number of times. */
export const texts = (value: string, help: string) => {
  const none: string[] = [];
  return { type: 'string', multiple: true, value, default: none, help } as const;
};

export const flag = (help: string) => ({ type: 'boolean', default: false, help }) as const;

/** Options that several commands have. */
export const by = text('NAME', 'the operator, for the record; default: your account on this machine');
export const byName = text('NAME', 'your name, for the record');
export const config = text('FILE', "the gateway's configuration");
export const rpc = texts('NETWORK=URL', 'a node of each network, such as eip155:8453=URL');
export const why = text("'TEXT'", 'your reason, for the record');
export const zone = text('ZONE', 'where days and months begin, such as Europe/Berlin; default: UTC');

const readerSuffices = 'DATABASE_URL may be of a user with the reader role alone (docs/operations/roles.md).';

/** How many arguments without a name a command takes: those before the first option of a form, of which ` | ` separates alternatives. */
export function mostArguments({ forms = [] }: CommandDescription): number {
  const alternatives = forms.flatMap((form) => form.replace(/(?:^| )\(?--.*$/, '').split(' | '));
  return Math.max(0, ...alternatives.map((words) => words.split(' ').filter((word) => word !== '').length));
}

/** The help of one command. */
export function helpOf(name: string, described: CommandDescription): string {
  const rows = givenOptions(described).map(({ given, help, fallback }) => ({
    given: `  ${given}`,
    help: fallback === '' ? help : `${help}; default: ${fallback}`,
  }));
  const width = Math.max(0, ...rows.map(({ given }) => given.length)) + 2;
  const options = rows.map(
    ({ given, help }) => given.padEnd(width) + help.replaceAll('\n', `\n${' '.repeat(width)}`),
  );
  return [
    `tollbook ${name}: ${described.summary}`,
    '',
    ...callsOf(name, described),
    ...options,
    ...notesOf(described).map((note) => `  ${note}`),
    '',
    ...exitLines(described.exits),
    ...(described.isReading ? ['', readerSuffices] : []),
  ].join('\n');
}

/** The page of all commands, in Markdown, without the end of its last line. */
export function commandsPage(commands: Readonly<Record<string, CommandDescription>>): string {
  const all = Object.entries(commands);
  const everywhere = exitMeanings({}).map(([code, meaning]) => `${code}: ${meaning}`);
  const intro = `# Every command
\`tollbook commands reference\` prints this page: ${all.length} commands, as \`tollbook COMMAND --help\` describes each. In brackets is the value that counts where an
option is not given; \`…\` means any number of times. Exit codes of every command are ${everywhere.join('; ')}.
For commands with *reader*, ${readerSuffices}`;
  return [intro, ...all.map(([name, described]) => sectionOf(name, described))].join('\n\n');
}

function sectionOf(name: string, described: CommandDescription): string {
  const options = givenOptions(described).map(({ given, help, fallback }) => {
    const shown = fallback === '' ? '' : ` (\`${fallback}\`)`;
    return `- \`${given}\`${shown}: ${help.replaceAll('\n', ' ')}`;
  });
  const everywhere = new Set(exitMeanings({}).map(([code]) => code));
  const exits = exitMeanings(described.exits ?? {}).filter(([code]) => !everywhere.has(code));
  return [
    `## \`${name}\``,
    `${callsOf(name, described)
      .map((call) => `\`${call}\``)
      .join(', or ')} ${described.summary}${described.isReading ? ' (*reader*)' : ''}`,
    ...options,
    ...notesOf(described).map((note) => `- ${note}`),
    ...exits.map(([code, meaning]) => `- exit code ${code}: ${meaning}`),
  ].join('\n');
}

function callsOf(name: string, { forms = [''], options = {} }: CommandDescription): string[] {
  const hasOptions = Object.keys(options).length > 0;
  return forms.map((form) =>
    ['tollbook', name, form, hasOptions ? '[OPTIONS]' : ''].filter((part) => part !== '').join(' '),
  );
}

function notesOf({ notes = [], noDatabase }: CommandDescription): readonly string[] {
  return noDatabase ? notes : [...notes, 'needs DATABASE_URL'];
}

/** How each option is given, and the value that counts where it is not; empty if there is none. */
function givenOptions({
  options = {},
}: CommandDescription): { readonly given: string; readonly help: string; readonly fallback: string }[] {
  return Object.entries(options).map(([name, { value, multiple, help, default: fallback }]) => ({
    given: `--${name}${value === undefined ? '' : ` ${value}${multiple ? ' …' : ''}`}`,
    help,
    fallback: typeof fallback === 'string' ? fallback : '',
  }));
}
