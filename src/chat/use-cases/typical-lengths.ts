import { readEvents, readGrownStreams } from '../../ledger/store/streams.ts';
import type { LedgerReader } from '../../ledger/store/ledger.ts';

/** How long a model's answers are, as this process has seen them. */
export interface TypicalLengths {
  /** Of a request that sets no length: twice what nineteen of twenty recent answers have at most, and at least {@link leastTokens}. */
  of(model: string): number;
  note(model: string, tokens: number): void;
}

/** Also where no answer is known. Short answers alone must not make the next one end early. */
export const leastTokens = 1_024;
const keptAnswers = 256;
/** Sorting them anew for each request would cost more than it tells. */
const answersPerEstimate = 16;

interface Model {
  readonly answers: number[];
  noted: number;
  typical: number;
}

/** Some hundreds of completions; read in a few milliseconds. */
const readAtStart = 2_000;

/** Learns from the last completions in the ledger. Whether their requests set a length is not recorded. */
export async function learnLengths({ pool, db }: LedgerReader, lengths: TypicalLengths): Promise<void> {
  const { lastSeq } = await readGrownStreams(pool, [], 0);
  for (const event of await readEvents(db, Math.max(0, lastSeq - readAtStart), readAtStart))
    if (event.type === 'chat_completed' && event.data.ending === 'completed')
      lengths.note(event.data.model, event.data.completion_tokens);
}

/** An answer that ended at its limit counts with that limit, so the estimate grows until answers fit. */
export function createTypicalLengths(): TypicalLengths {
  const models = new Map<string, Model>();
  return {
    of: (model) => models.get(model)?.typical ?? leastTokens,
    note(name, tokens) {
      const model = models.get(name) ?? { answers: [], noted: 0, typical: leastTokens };
      models.set(name, model);
      model.answers[model.noted % keptAnswers] = tokens;
      model.noted += 1;
      if (model.noted <= answersPerEstimate || model.noted % answersPerEstimate === 0)
        model.typical = typicalOf(model.answers);
    },
  };
}

function typicalOf(answers: readonly number[]): number {
  const ordered = answers.toSorted((one, other) => one - other);
  const high = ordered[Math.ceil(ordered.length * 0.95) - 1] ?? 0;
  return Math.max(leastTokens, 2 * high);
}
