import { describe, expect, test } from 'vitest';
import { readChatRequest, rewriteForUpstream } from '../../../src/chat/rules/chat-request.ts';
import { unpricedParameter } from '../../../src/chat/rules/unpriced-parameter.ts';

const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
const google = { google: { thought_signature: 'sig' } };
const signed = { provider_specific_fields: { thought_signature: 'sig' } };
const thinking = { type: 'thinking', thinking: 'hm', signature: 'sig' };

/** The message as it goes to the upstream, with what refuses the request. */
function sentBack(message: object) {
  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }, message] };
  const request = readChatRequest(Buffer.from(JSON.stringify(body)));
  if ('invalid' in request) throw new Error(JSON.stringify(request.invalid));
  const sent = JSON.parse(
    rewriteForUpstream(request, { upstreamModel: 'm', forceUsage: false }),
  ) as typeof body;
  // what is counted is what is forwarded
  expect(sent.messages).toEqual(request.messages);
  return { refused: unpricedParameter(request)?.body.error.param, sent: sent.messages[1] };
}

describe('an answer that a client sends back as a message is never refused', () => {
  const said = { role: 'assistant', content: 'hello' };
  test.each([
    ['its id is dropped', { id: 'msg_1' }, {}],
    [
      'fields of a vendor are dropped',
      { provider_specific_fields: { citations: [{ url: 'x' }], a: null } },
      {},
    ],
    ['signatures of thoughts are kept', signed, signed],
    [
      'those of a list are kept',
      { provider_specific_fields: { thought_signatures: ['s'], x: 1 } },
      { provider_specific_fields: { thought_signatures: ['s'] } },
    ],
    ['extra content of Google is kept', { extra_content: google }, { extra_content: google }],
    [
      'other extra content is dropped',
      { extra_content: { openai: { image: 'x' }, google: { file: {} } } },
      {},
    ],
    ['blocks of thoughts are kept', { thinking_blocks: [thinking] }, { thinking_blocks: [thinking] }],
    ['other blocks are dropped', { thinking_blocks: [{ type: 'image', source: {} }] }, {}],
    [
      'nothing is not a member',
      { provider_specific_fields: null, thinking_blocks: null },
      { provider_specific_fields: null, thinking_blocks: null },
    ],
    [
      'so are those of its calls of tools',
      {
        tool_calls: [
          {
            ...call,
            ...signed,
            extra_content: { ...google, openai: {} },
            function: { ...call.function, provider_specific_fields: { x: {} } },
          },
        ],
      },
      { tool_calls: [{ ...call, ...signed, extra_content: google }] },
    ],
    ['malformed ones too', { provider_specific_fields: 'x', extra_content: 7, thinking_blocks: {} }, {}],
  ])('%s', (_, extra, kept) => {
    expect(sentBack({ ...said, ...extra })).toEqual({ refused: undefined, sent: { ...said, ...kept } });
  });

  test('an id of a call of a tool is kept', () => {
    const message = { role: 'assistant', content: null, tool_calls: [call] };
    expect(sentBack(message)).toEqual({ refused: undefined, sent: message });
  });
});
