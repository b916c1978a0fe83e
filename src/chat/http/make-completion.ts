import type { FastifyRequest } from 'fastify';
import type { AdmittedChat } from '../use-cases/admission.ts';
import { type ChatAnswer, type Refused, refuse } from '../use-cases/answer.ts';
import { clientLeft, completeChat, dropChat } from '../use-cases/complete-chat.ts';
import type { ChatContext } from '../use-cases/context.ts';
import { openAiError } from '../../base/errors/openai-error.ts';
import { addressBudgetKey, type Charge, requestsOfBytes } from '../../base/runtime/budget.ts';
import { addressOf } from '../../base/http/request-values.ts';
import { createWaitLimit } from '../../ledger/http/wait-limit.ts';

export const ledgerUnavailable = refuse(openAiError('ledger_unavailable'), { retryAfterSecs: 2 });
/** The client was refused already, because the ledger could not be reached in time. */
const gaveUp = 'the ledger cannot be reached';

/** A request for a completion. */
export interface Asked {
  /** Of the time of the request: a reload does not change the configuration of a running one. */
  readonly context: ChatContext;
  readonly request: FastifyRequest;
  readonly bodyBytes: number;
  readonly admission: Promise<AdmittedChat | Refused>;
  /** Calls its listener once the connection is closed or the answer is sent. */
  readonly onClose: (listener: () => void) => void;
}

/** Makes the completions that requests ask for: requests to the API and forms of the customers' pages alike. */
export interface Completions {
  /**
   * Charges a request to its client's address before its body is read: a client whose requests are refused all the time costs no more
   * than their headers. Returns for how many seconds the client has to wait; above 0 it must be refused.
   */
  charge(request: FastifyRequest): number;
  /** A client that leaves aborts its completion immediately. `flow` settles when the work for it is done, perhaps after the answer. */
  make(asked: Asked): { readonly flow: Promise<ChatAnswer>; readonly answer: Promise<ChatAnswer> };
  end(): void;
}

/** @param cutShort its abort ends all of them */
export function createCompletions(current: () => ChatContext, cutShort: AbortSignal): Completions {
  const { lane, log } = current();
  const waitLimit = createWaitLimit({ lane, log, refused: ledgerUnavailable });
  const charges = new WeakMap<FastifyRequest, Charge>();
  const open = new Set<AbortController>();
  cutShort.addEventListener('abort', () => {
    for (const client of open) client.abort();
  });

  const answerWithin = async (
    { request, bodyBytes, admission }: Asked,
    flow: Promise<ChatAnswer>,
    client: AbortController,
  ): Promise<ChatAnswer> => {
    const admitted = await waitLimit.within(admission);
    if (admitted === ledgerUnavailable) client.abort(gaveUp);
    // the gateway's own faults cost no budget
    if (admitted.kind !== 'refused' || admitted.error.status >= 500) charges.get(request)?.refund();
    else charges.get(request)?.chargeMore(requestsOfBytes(bodyBytes));
    return admitted === ledgerUnavailable ? ledgerUnavailable : flow;
  };

  return {
    charge(request) {
      const charge = current().budget.open();
      charge.take(addressBudgetKey(addressOf(request)));
      charges.set(request, charge);
      return charge.waitSecs();
    },
    make(asked) {
      const { context, admission, onClose } = asked;
      const client = new AbortController();
      open.add(client);
      onClose(() => {
        open.delete(client);
        // an abort without a reason would create an exception with a stack trace for every answer
        client.abort(clientLeft);
      });
      const flow = makeAdmitted(context, admission, client.signal, cutShort);
      void context.running.add(flow);
      return { flow, answer: answerWithin(asked, flow, client) };
    },
    end: () => waitLimit.end(),
  };
}

async function makeAdmitted(
  context: ChatContext,
  admission: Promise<AdmittedChat | Refused>,
  signal: AbortSignal,
  cutShort: AbortSignal,
): Promise<ChatAnswer> {
  const chat = await admission;
  if (chat.kind === 'refused') return chat;
  if (!signal.aborted) return completeChat(context, chat, signal, cutShort);
  dropChat(context, chat);
  return ledgerUnavailable;
}
