import type { Random } from '../chaos/random.ts';

/** Values that the gateway has answered, by their key, so that requests can name things that exist. */
export interface KnownValues {
  learn(body: string): void;
  /** One of the latest values of this key; undefined if there was none. */
  draw(name: string, random: Random): unknown;
}

const keptPerName = 8;
const maxBodyChars = 20_000;
/** What answers call by another name than requests. */
const namesInAnswers: Readonly<Record<string, string>> = {
  cursor: 'next_cursor',
  account: 'account_id',
  model: 'id',
};

export function createKnownValues(): KnownValues {
  const byName = new Map<string, (string | number)[]>();
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, inner] of Object.entries(value)) {
      if (typeof inner !== 'string' && typeof inner !== 'number') {
        visit(inner);
        continue;
      }
      const known = byName.get(name) ?? [];
      if (String(inner).length > 200 || known.includes(inner)) continue;
      byName.set(name, [inner, ...known].slice(0, keptPerName));
    }
  };
  return {
    learn(body) {
      if (body.length > maxBodyChars || !/^[{[]/.test(body)) return;
      visit(JSON.parse(body));
    },
    draw(name, random) {
      const known = byName.get(name) ?? byName.get(namesInAnswers[name] ?? '') ?? [];
      // the newest values of two names are often of one answer, such as a call and its lease
      return random.chance(0.5) ? known[0] : known[random.between(0, known.length - 1)];
    },
  };
}
