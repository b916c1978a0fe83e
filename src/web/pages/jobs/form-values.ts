import type { InputFault } from '../../../base/values/job-input.ts';
import { escaped, type Member, nameOf, type Simple } from './form-parts.ts';

/** The mistakes of a form: by the name of a control, and those that belong to no control. */
export interface Mistakes {
  readonly of: ReadonlyMap<string, string>;
  readonly others: readonly string[];
}

export const noMistakes: Mistakes = { of: new Map(), others: [] };

/** The name of the control that takes a whole body. */
export const wholeName = 'body';

/** The typed values as the JSON text of an object, and those that cannot be read. Numbers keep their digits. */
export function readMembers(
  members: readonly Member[],
  fields: URLSearchParams,
): { readonly json: string; readonly mistakes: Mistakes } {
  const of = new Map<string, string>();
  const json = readObject(members, fields, of) ?? '{}';
  return { json, mistakes: { of, others: [] } };
}

/** Undefined if nothing was typed into any of its members. */
function readObject(
  members: readonly Member[],
  fields: URLSearchParams,
  mistakes: Map<string, string>,
): string | undefined {
  const read = members.flatMap((member) => {
    const json = readMember(member, fields, mistakes);
    return json === undefined ? [] : [`${JSON.stringify(member.key)}:${json}`];
  });
  return read.length === 0 ? undefined : `{${read.join(',')}}`;
}

function readMember(
  { name, part, isRequired }: Member,
  fields: URLSearchParams,
  mistakes: Map<string, string>,
): string | undefined {
  const text = (fields.get(name) ?? '').replaceAll('\r\n', '\n');
  const isEmpty = text.trim() === '';
  const wrong = (mistake: string): undefined => void mistakes.set(name, mistake);
  switch (part.kind) {
    case 'text':
      // an empty text that is needed is one that was forgotten; its JSON can be written
      return text === '' ? undefined : JSON.stringify(text);
    case 'number':
      return isEmpty ? undefined : (numberText(text, part.isWhole) ?? wrong(numberMistake(part.isWhole)));
    case 'choice': {
      if (text === '') return undefined;
      return chosenOf(part.values, [text])[0] ?? wrong('Choose one of these.');
    }
    case 'choices': {
      const chosen = chosenOf(part.values, fields.getAll(name));
      return chosen.length === 0 && !isRequired ? undefined : `[${chosen.join(',')}]`;
    }
    case 'list':
      return readList(part.of, text, isRequired) ?? (isEmpty ? undefined : wrong(listMistake(part.of)));
    case 'group':
      return readObject(part.members, fields, mistakes) ?? (isRequired ? '{}' : undefined);
    case 'json':
      if (isEmpty) return undefined;
      return isJson(text) ? text.trim() : wrong('This is not JSON.');
  }
}

/** The JSON texts of the values that were chosen, in the order of the schema. */
function chosenOf(values: readonly Simple[], texts: readonly string[]): readonly string[] {
  return values.map((value) => JSON.stringify(value)).filter((value) => texts.includes(value));
}

function readList(of: 'text' | 'number' | 'whole', text: string, isRequired: boolean): string | undefined {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (lines.length === 0) return isRequired ? '[]' : undefined;
  const items = lines.map((line) =>
    of === 'text' ? JSON.stringify(line) : numberText(line, of === 'whole'),
  );
  return items.includes(undefined) ? undefined : `[${items.join(',')}]`;
}

/** A number as JSON writes it; undefined for anything else, and for digits that a runner's double would lose. */
function numberText(typed: string, isWhole: boolean): string | undefined {
  const text = typed.trim().replace(',', '.').replace(/^\+/, '');
  const form = isWhole ? /^-?(?:0|[1-9]\d*)$/ : /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i;
  if (!form.test(text)) return undefined;
  const number = Number(text);
  return isWhole
    ? Number.isSafeInteger(number)
      ? text
      : undefined
    : Number.isFinite(number)
      ? text
      : undefined;
}

function numberMistake(isWhole: boolean): string {
  return isWhole ? 'A whole number, such as 12.' : 'A number, such as 12 or 2.5.';
}

function listMistake(of: 'text' | 'number' | 'whole'): string {
  return `One a line. ${numberMistake(of === 'whole')}`;
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The faults that the check of the body found, each at its control, or at the closest one around it. */
export function mistakesOf(faults: readonly InputFault[], members: readonly Member[]): Mistakes {
  const names = new Set(allNames(members));
  const of = new Map<string, string>();
  const others: string[] = [];
  for (const { at, rule, missing, text } of faults) {
    const place = missing === undefined ? at : `${at}/${escaped(missing)}`;
    const name = closest(place, names);
    if (name === undefined) others.push(`${text.replace('NOT', 'not')}.`);
    else if (!of.has(name))
      of.set(name, missing === undefined ? `It ${rule.replace('NOT', 'not')}.` : 'This is needed.');
  }
  return { of, others };
}

function closest(pointer: string, names: ReadonlySet<string>): string | undefined {
  for (let at = pointer; at !== ''; at = at.slice(0, at.lastIndexOf('/')))
    if (names.has(nameOf(at))) return nameOf(at);
  return undefined;
}

function allNames(members: readonly Member[]): readonly string[] {
  return members.flatMap(({ name, part }) => [
    name,
    ...(part.kind === 'group' ? allNames(part.members) : []),
  ]);
}

/** The first value of a control: the schema's default. */
export function usualText({ usual, part }: Pick<Member, 'usual' | 'part'>): string {
  if (usual === undefined) return '';
  if (part.kind === 'text') return typeof usual === 'string' ? usual : '';
  if (part.kind === 'list') return Array.isArray(usual) ? usual.map(String).join('\n') : '';
  return JSON.stringify(usual);
}
