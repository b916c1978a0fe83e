import type { ModelTarget } from '../../base/config/config.ts';
import type { Span, SpanAttributes, Tracing } from '../../base/values/tracing.ts';
import { traceStep } from '../../base/values/tracing.ts';
import type { StreamEnding, UpstreamAnswer, UpstreamCompleted } from '../peers/upstream/answer.ts';
import type { AdmittedChat } from './admission.ts';
import type { Refused } from './answer.ts';

/** The admission of a completion as a step of its request. */
export function traceAdmission(
  tracing: Tracing | undefined,
  work: () => Promise<AdmittedChat | Refused>,
): Promise<AdmittedChat | Refused> {
  return traceStep(tracing, { name: 'admit completion' }, work, (result) =>
    result.kind === 'admitted'
      ? { attributes: { 'gen_ai.request.model': result.model.name } }
      : { attributes: { 'tollbook.code': result.error.body.error.code } },
  );
}

/**
 * The call of an upstream as a span, named and described by OpenTelemetry's conventions for generative AI: it ends with the answer,
 * also if that is a stream. Nothing of the prompt or the answer is in it.
 * @param model as clients name it
 */
export async function traceUpstream(
  tracing: Tracing | undefined,
  model: string,
  target: ModelTarget,
  ask: () => Promise<UpstreamAnswer>,
): Promise<UpstreamAnswer> {
  const span = tracing?.begin({
    name: `chat ${model}`,
    kind: 'client',
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': target.upstream,
      'gen_ai.request.model': model,
    },
  });
  if (!span) return ask();
  const answer = await span.run(ask);
  if (answer.kind === 'streaming') void endWithStream(span, answer.firstByteMs, answer.ending);
  else endWith(span, answer);
  return answer;
}

function endWith(span: Span, answer: Exclude<UpstreamAnswer, { kind: 'streaming' }>): void {
  switch (answer.kind) {
    case 'completed':
      span.note({ ...usageOf(answer), ...firstByte(answer.firstByteMs) });
      return span.end();
    case 'busy':
      return span.end('busy');
    case 'refused':
      return span.end(`status_${answer.status}`);
    case 'failed':
      return span.end(answer.cause);
  }
}

async function endWithStream(span: Span, firstByteMs: number, ending: Promise<StreamEnding>): Promise<void> {
  const end = await ending;
  span.note({ ...usageOf(end), ...firstByte(firstByteMs) });
  span.end(end.kind === 'failed' ? end.cause : undefined);
}

function usageOf({ usage }: Pick<UpstreamCompleted, 'usage'>): SpanAttributes {
  return {
    'gen_ai.usage.input_tokens': usage?.promptTokens,
    'gen_ai.usage.output_tokens': usage?.completionTokens,
  };
}

function firstByte(firstByteMs: number): SpanAttributes {
  return { 'gen_ai.response.time_to_first_chunk': firstByteMs / 1_000 };
}
