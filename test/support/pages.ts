import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const root = path.resolve(import.meta.dirname, '../..');

/** A fenced block of a page. */
export interface Block {
  readonly language: string;
  readonly text: string;
  /** The output that the page shows for the commands of a `sh` block: the `text` block right after it. */
  readonly shown: string | undefined;
  /** Why no test runs it: the comment `<!-- not run: REASON -->` right before it. */
  readonly notRun: string | undefined;
  /** The line of its first fence, from 1. */
  readonly line: number;
}

export interface Page {
  /** Relative to the repository. */
  readonly file: string;
  readonly text: string;
  readonly blocks: readonly Block[];
}

const fenced =
  /^(?:<!-- not run: (?<notRun>.+) -->\n)?```(?:sh\n(?<commands>[^]*?)^```\n(?:```text\n(?<shown>[^]*?)^```\n)?|(?<language>\w*)\n(?<other>[^]*?)^```\n)/gm;

function blocksOf(text: string): Block[] {
  return [...text.matchAll(fenced)].map(({ index, groups }) => ({
    language: groups?.['language'] ?? 'sh',
    text: groups?.['commands'] ?? groups?.['other'] ?? '',
    shown: groups?.['shown'],
    notRun: groups?.['notRun'],
    line: text.slice(0, index).split('\n').length,
  }));
}

export function readPage(file: string): Page {
  const text = readFileSync(path.join(root, file), 'utf8');
  return { file, text, blocks: blocksOf(text) };
}

/** Every Markdown page of the repository. */
export const pages: readonly Page[] = globSync('{*.md,docs/**/*.md,test/**/*.md}', { cwd: root })
  .toSorted()
  .map(readPage);

/** The text without its fenced blocks. */
export function proseOf({ text }: Page): string {
  return text.replaceAll(/^```[^]*?^```$/gm, '');
}
