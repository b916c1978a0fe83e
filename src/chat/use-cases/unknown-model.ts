import { type OpenAiError, openAiError } from '../../base/errors/openai-error.ts';
import type { Caller } from './caller.ts';
import type { ChatContext } from './context.ts';

const mostNamed = 5;
const listed = 'GET /v1/models lists them.';

/** Names the model that was asked for, if its name is one that may stand in an answer, and those that the caller may use. */
export function unknownModel(
  { models }: Pick<ChatContext, 'models'>,
  caller: Caller,
  asked: string,
): OpenAiError {
  const may = caller.kind === 'api_key' ? caller.key.models : undefined;
  const usable = [...models.keys()].filter((name) => may?.includes(name) ?? true);
  const isOfOthers = models.has(asked);
  const what = isOfOthers
    ? 'This API key may not use this model.'
    : `There is no model ${/^[\w./:@-]{1,64}$/.test(asked) ? `"${asked}"` : 'with this name'}.`;
  const message = `${what} ${namesOf(usable, isOfOthers ? 'It may use' : 'There are')} Nothing was charged. ${listed}`;
  return openAiError('model_not_found', { param: 'model', message });
}

function namesOf(names: readonly string[], verb: string): string {
  if (names.length === 0) return 'No model can be used.';
  const shown = names.slice(0, mostNamed);
  const others = names.length - shown.length;
  return `${verb} ${shown.join(', ')}${others > 0 ? ` and ${others} more` : ''}.`;
}
