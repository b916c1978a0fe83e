import { isJsonObject, type JsonObject } from '../../base/values/exact-json.ts';

/** What is kept of a member; undefined where it is dropped. */
type Keep = (value: unknown) => unknown;

const isText = (value: unknown): boolean => typeof value === 'string';
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const isScalar = (value: unknown): boolean => typeof value !== 'object';

/** The members that pass their test; undefined where none does. */
const membersOf =
  (tests: Readonly<Record<string, (value: unknown) => boolean>>): Keep =>
  (value) => {
    if (!isJsonObject(value)) return undefined;
    const kept = Object.entries(value).filter(
      ([key, member]) => Object.hasOwn(tests, key) && tests[key]?.(member),
    );
    return kept.length > 0 ? Object.fromEntries(kept) : undefined;
  };
const google = membersOf({ thought: isScalar, thought_signature: isText });

/** Signatures of thoughts, without which Gemini takes no call of a tool back: LiteLLM has them in the one, Google in the other. */
const ofCall: Readonly<Record<string, Keep>> = {
  provider_specific_fields: membersOf({ thought_signature: isText, thought_signatures: isTexts }),
  extra_content: (value) => {
    const kept = isJsonObject(value) ? google(value['google']) : undefined;
    return kept && { google: kept };
  },
};
const ofMessage: Readonly<Record<string, Keep>> = {
  ...ofCall,
  id: () => undefined,
  // Anthropic takes no call of a tool back without those before it
  thinking_blocks: (value) => {
    const kept = Array.isArray(value)
      ? value.filter((block) => isJsonObject(block) && Object.values(block).every(isScalar))
      : [];
    return kept.length > 0 ? kept : undefined;
  },
  tool_calls: (value) => (Array.isArray(value) ? value.map((call) => keptOf(call, toolCall)) : value),
};
const toolCall: Readonly<Record<string, Keep>> = {
  ...ofCall,
  function: (value) => keptOf(value, ofCall),
};

/**
 * A message without the fields of this gateway's answers that no upstream needs: clients send whole answers back, and one vendor refuses
 * another vendor's fields. The same value where nothing is dropped.
 */
export function withoutAnswerMembers<T>(message: T): T {
  return keptOf(message, ofMessage) as T;
}

function keptOf(value: unknown, rules: Readonly<Record<string, Keep>>): unknown {
  if (!isJsonObject(value) || !Object.keys(value).some((key) => Object.hasOwn(rules, key))) return value;
  const members = Object.entries(value).map(
    ([key, member]) =>
      [key, Object.hasOwn(rules, key) && member != null ? rules[key]?.(member) : member] as const,
  );
  return Object.fromEntries(members.filter(([, member]) => member !== undefined)) satisfies JsonObject;
}
