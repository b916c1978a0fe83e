import { type Posting, postingOf } from '../credit/postings.ts';
import type { EntityKind, EntityStep, EventDescriptor } from '../events/descriptor.ts';
import { eventDescriptors, type LedgerEvent } from '../events/event.ts';

/** Where one stream of model chat, of people or of the operator stands: as little as is needed to tell what may come next. */
export class EntityCheck {
  #step: EntityStep = 'none';
  /** Of a chat: what is held for it, and what was taken of that. */
  #heldMicros = 0n;
  #takenMicros = 0n;
  /** The spend that the first event of its stream names. */
  #spend = '';

  /** Takes the stream's next event. What is wrong with it; undefined where it is legal. */
  apply(event: LedgerEvent, stream: string): string | undefined {
    const { transition }: EventDescriptor = eventDescriptors[event.type];
    if (transition.of !== 'entity')
      return transition.of === 'note'
        ? undefined
        : 'it belongs to a quote, and this stream is none of a quote';
    const { kind, from, to } = transition;
    if (!isOfStream(event, kind, stream)) return 'its data name something else than its stream does';
    if (!from.includes(this.#step))
      return this.#step === 'none'
        ? 'what has to come before it is not there'
        : `the ${kind} is ${this.#step}, which cannot be followed by ${event.type}`;
    if (to) this.#step = to;
    const posting = kind === 'chat' ? postingOf(event) : undefined;
    return posting ? this.#move(posting) : this.#nameSpend(event);
  }

  /** A chat takes and gives back what it holds, and no more. */
  #move({ from, to, amountMicros }: Posting): string | undefined {
    if (from === 'held') this.#heldMicros -= amountMicros;
    if (to === 'held') this.#heldMicros += amountMicros;
    if (from === 'used') this.#takenMicros -= amountMicros;
    if (to === 'used') this.#takenMicros += amountMicros;
    if (this.#heldMicros < 0n) return 'more credit is taken or released than was held for this chat';
    return this.#takenMicros < 0n ? 'more credit comes back than was taken for this chat' : undefined;
  }

  #nameSpend(event: LedgerEvent): string | undefined {
    const name = spendOf(event);
    if (name === undefined) return undefined;
    if (event.type === 'spend_accepted') this.#spend = name;
    return name === this.#spend ? undefined : 'it names another spend than the one that was accepted';
  }
}

/** What a spend is claimed by; undefined of other events. */
export function spendOf({ data }: LedgerEvent): string | undefined {
  if (!('commitment' in data)) return undefined;
  const { network, contract, commitment, nonce } = data;
  return `${network}/${contract}/${commitment}/${nonce}`;
}

function isOfStream({ data }: LedgerEvent, kind: EntityKind, stream: string): boolean {
  const id = idOf(data, kind);
  return id === undefined ? stream.startsWith(`${kind}:`) : stream === `${kind}:${id}`;
}

/** The id that the data name, where they do. */
function idOf(data: LedgerEvent['data'], kind: EntityKind): string | number | undefined {
  switch (kind) {
    case 'chat':
    case 'spend':
      return 'chat_id' in data ? data.chat_id : undefined;
    case 'account':
      return 'account_id' in data ? data.account_id : undefined;
    case 'key':
      return 'key_id' in data ? data.key_id : undefined;
    case 'user':
      return 'user_id' in data ? data.user_id : undefined;
    case 'sweep':
      return 'swept_to' in data
        ? `${data.network.slice('eip155:'.length)}:${data.transaction}:${data.log_index}`
        : undefined;
    case 'session':
      return 'session_id' in data ? data.session_id : undefined;
  }
}
