import { Histogram, type Registry } from 'prom-client';
import type { LedgerEvent } from '../rules/event.ts';

/** What the ledger keeps of a completion. */
type Completion = Extract<LedgerEvent, { type: 'chat_completed' }>['data'];

export interface ChatMetrics {
  completed(completion: Completion): void;
}

/** The boundaries that OpenTelemetry's semantic conventions for generative AI give. */
const tokenCounts = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576];
const operationSecs = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

/** Completions by model and upstream, both of the configuration, as OpenTelemetry names them. */
export function createChatMetrics(registers: Registry[]): ChatMetrics {
  const labelNames = ['gen_ai_operation_name', 'gen_ai_provider_name', 'gen_ai_request_model'] as const;
  const tokens = new Histogram({
    name: 'gen_ai_client_token_usage',
    help: 'Tokens of a completion; an estimate if the upstream reported none',
    labelNames: [...labelNames, 'gen_ai_token_type'],
    buckets: tokenCounts,
    registers,
  });
  const durations = new Histogram({
    name: 'gen_ai_client_operation_duration_seconds',
    help: 'From asking the upstream to the end of its answer',
    labelNames,
    buckets: operationSecs,
    registers,
  });
  const firstChunks = new Histogram({
    name: 'gen_ai_client_operation_time_to_first_chunk_seconds',
    help: 'From asking the upstream to the first byte of its answer',
    labelNames,
    buckets: operationSecs,
    registers,
  });
  return {
    completed({
      model,
      upstream,
      prompt_tokens: input,
      completion_tokens: output,
      first_byte_ms,
      latency_ms,
    }) {
      const labels = {
        gen_ai_operation_name: 'chat',
        // missing if another process ended the completion of one that died
        ...(upstream === undefined ? {} : { gen_ai_provider_name: upstream }),
        gen_ai_request_model: model,
      };
      tokens.observe({ ...labels, gen_ai_token_type: 'input' }, input);
      tokens.observe({ ...labels, gen_ai_token_type: 'output' }, output);
      if (latency_ms !== undefined) durations.observe(labels, latency_ms / 1_000);
      if (first_byte_ms !== undefined) firstChunks.observe(labels, first_byte_ms / 1_000);
    },
  };
}
