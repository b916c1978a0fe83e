import type { ChatError } from './chat-answer.ts';
import { openAiError, type OpenAiError } from '../../base/errors/openai-error.ts';

const maxLength = 500;
/** An upstream may answer 400 although the problem is the operator's account. */
const aboutAccount =
  /\b(?:api[ _-]?keys?|accounts?|balance|billing|credentials?|credits?|organi[sz]ation|payments?|permissions?|plan|project|quota|subscription|unauthori[sz]ed)\b/i;
/**
 * Addresses and credentials of an upstream, in the order in which they are removed. Each pattern starts at the beginning of a
 * word, so that a long text does not take long.
 */
const secrets: readonly RegExp[] = [
  /\b(?:bearer|basic)\s+\S+/gi,
  /\b(?:sk|pk|rk|gsk|xai|hf|ghp|AKIA|AIza)[-_]?(?=[\w*-]*[\d*])[\w*-]{6,}/g,
  /\bsk-[^\s"',;)]+/gi,
  // ids and hashes
  /(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{24,}/gi,
  /(?<![^\s"'<>(])[^\s"'<>(@]+@[^\s"'<>)]+/g,
  /(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*:\/\/[^\s"'<>)]*/gi,
  /\bdata:[^\s"'<>)]+/gi,
  // paths: from a root, with two steps or more, of Windows
  /(?<![\w.])[~.]{0,2}\/[\w.@+-][\w.@+/-]*/g,
  /(?<![\w.@+/-])[\w.@+-]+\/[\w.@+-]+\/[\w.@+/-]+/g,
  /(?:\b[a-z]:|\\)\\[^\s"'<>)]+/gi,
  // hosts
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g,
  /\[?(?<![0-9a-f:])[0-9a-f]*(?::[0-9a-f]*){2,}\]?(?::\d+)?/gi,
  /\blocalhost\b(?::\d+)?/gi,
  /(?<![a-z0-9.-])(?:[a-z0-9-]+\.)+(?:ai|app|arpa|cloud|cn|co|com|corp|de|dev|eu|example|fr|internal|invalid|io|jp|lan|local|net|nl|org|ru|svc|test|uk|us|xyz)\b(?::\d+)?/gi,
  /(?<![\w.-])(?=[a-z]*[\d.-])[a-z0-9.-]+:\d{2,5}\b/gi,
];

/**
 * The error for a request that an upstream refused (400, 413, 422): with the upstream's message if it is about the request,
 * without addresses, paths and anything that looks like a key.
 */
export function refusedRequestError(error: ChatError | undefined): OpenAiError {
  const own = openAiError('invalid_request', { message: "The model's server refused the request." });
  if (!error || aboutAccount.test(`${error.message} ${error.code} ${error.type}`)) return own;
  const { message, param, code } = error;
  return {
    ...own,
    body: {
      error: {
        ...own.body.error,
        message: withoutSecrets(message) ?? own.body.error.message,
        param: nameIn(param) ?? null,
        code: nameIn(code) ?? own.body.error.code,
      },
    },
  };
}

/** Undefined if nothing is left. */
function withoutSecrets(message: string): string | undefined {
  const text = secrets.reduce((left, pattern) => left.replaceAll(pattern, '…'), message).trim();
  return /\p{L}/u.test(text) ? text.slice(0, maxLength).toWellFormed() : undefined;
}

function nameIn(value: string | undefined): string | undefined {
  return value !== undefined && /^[\w.[\]-]{1,64}$/.test(value) ? value : undefined;
}
