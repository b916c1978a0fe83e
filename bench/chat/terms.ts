/** What is asked and answered, the same of every server. */
import {
  answerOf,
  bodyOf,
  chunksOf,
  type ModelRequest,
  usageChunkOf,
} from '../../src/devnet/model-answer.ts';

export const path = '/v1/chat/completions';
export const model = 'bench-large';
/** In the currency, for a million tokens. */
export const price = { input: '2.50', output: '10.00' };

const answerWords = 64;
const instruction = 'You answer in the style of the house, in few words, and you never invent a source. ';

/** About 800 bytes. Usage is asked for in a stream too, so that the upstream says the same to everybody. */
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
/** A stream's events: who answers, a token each, the end, the usage, and the word that it was all. */
export const answerEvents = [...chunksOf(answer), usageChunkOf(answer)]
  .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  .concat('data: [DONE]\n\n');

/** What the last token of an answer says, and behind it what a stream ends with: a server may not leave them out. */
export const lastWord = `word${answerWords}`;
export const lastEvent = 'data: [DONE]';
