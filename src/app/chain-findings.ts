import type { Config } from '../base/config/config.ts';
import { formatPath, type Mistake, type Path } from '../base/config/mistakes.ts';
import type { Fact } from '../base/peers/rpc/contract-facts.ts';

/** Something about a key of the configuration that the chain shows, or does not show. */
export interface Finding {
  readonly at: Path;
  readonly message: string;
}

/** What the chains say about a configuration, or a part of it. */
export interface ChainFindings {
  /** The chain says something else. */
  readonly mistakes: readonly Finding[];
  /** An RPC did not answer: to be asked again. */
  readonly unanswered: readonly Finding[];
  /** The contract does not say: cannot be checked. */
  readonly unchecked: readonly Finding[];
}

export const noFindings: ChainFindings = { mistakes: [], unanswered: [], unchecked: [] };

export function mistake(at: Path, message: string): ChainFindings {
  return { ...noFindings, mistakes: [{ at, message }] };
}

export function unanswered(at: Path, message: string): ChainFindings {
  return { ...noFindings, unanswered: [{ at, message }] };
}

export function unchecked(at: Path, message: string): ChainFindings {
  return { ...noFindings, unchecked: [{ at, message }] };
}

export function together(findings: readonly ChainFindings[]): ChainFindings {
  return {
    mistakes: findings.flatMap((found) => found.mistakes),
    unanswered: findings.flatMap((found) => found.unanswered),
    unchecked: findings.flatMap((found) => found.unchecked),
  };
}

/** Judges a fact if the chain tells it. `what` names it: `decimals()`. */
export function judge<T>(
  fact: Fact<T>,
  at: Path,
  what: string,
  ofKnown: (value: T) => ChainFindings,
): ChainFindings {
  switch (fact.kind) {
    case 'known':
      return ofKnown(fact.value);
    case 'untold':
      return unchecked(at, `cannot be checked: the contract has no usable ${what}`);
    case 'silent':
      return unanswered(at, `is not checked yet: the RPC does not answer ${what} (${fact.cause})`);
  }
}

const longestShown = 64;

/** A contract's text for a person: in quotes, on one line, with nothing that a terminal or a log takes for a command. */
export function quoted(text: string): string {
  const plain = JSON.stringify(text.slice(0, longestShown)).replaceAll(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return text.length > longestShown ? `${plain} …` : plain;
}

/** A finding with its place in the operator's file. */
export function located({ file, lineOf }: Config, { at, message }: Finding): Mistake {
  const line = lineOf(at);
  return { path: formatPath(at), file, message, ...(line === undefined ? {} : { line }) };
}
