/** The request and the answer, the same for every server. */
import {
  answerOf,
  bodyOf,
  chunksOf,
  type ModelRequest,
  usageChunkOf,
} from '../../src/devnet/model-answer.ts';

export const path = '/v1/chat/completions';
export const model = 'bench-large';
/** In the currency, per million tokens. */
export const price = { input: '2.50', output: '10.00' };

const answerWords = 64;
const instruction = 'You answer in the style of the house, in few words, and you never invent a source. ';

/** About 800 bytes. Streams include usage, so that the upstream sends the same to every server. */
function request(stream: boolean): ModelRequest {
  return {
    model,
    messages: [
      { role: 'system', content: instruction.repeat(7) },
      { role: 'user', content: `Say something about the weather, words:${answerWords}` },
    ],
    max_tokens: answerWords,
    ...(stream && { stream, stream_options: { include_usage: true } }),
  };
}

export const requestBody = { whole: JSON.stringify(request(false)), stream: JSON.stringify(request(true)) };

const answer = answerOf(request(false));
export const { usage } = answer;
export const answerBody = JSON.stringify(bodyOf(answer));
/** A stream's events: the role, one event per token, the end, the usage and `[DONE]`. */
export const answerEvents = [...chunksOf(answer), usageChunkOf(answer)]
  .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  .concat('data: [DONE]\n\n');

/** The last token of an answer and the end of a stream: a server must pass both on. */
export const lastWord = `word${answerWords}`;
export const lastEvent = 'data: [DONE]';
