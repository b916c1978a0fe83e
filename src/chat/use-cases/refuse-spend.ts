import { openAiError } from '../../base/errors/openai-error.ts';
import type { SpendRefusal } from './spend/refusal.ts';
import { type Refused, refuse } from './answer.ts';

/** How a client is answered whose spend authorization does not pay for its request. */
export function refuseSpend(refusal: SpendRefusal): Refused {
  switch (refusal.kind) {
    case 'invalid': {
      const { fault, message } = refusal;
      return refuse(openAiError(fault, message === undefined ? {} : { message }));
    }
    case 'too_many_failures':
      return refuse(openAiError('rate_limit_exceeded'), { retryAfterSecs: 60 });
    case 'in_progress':
      return refuse(openAiError('spend_in_progress'), { retryAfterSecs: 2 });
    case 'already_paid': {
      const generation = refusal.chatId === undefined ? '' : `, as generation ${refusal.chatId}`;
      const message =
        `The spend authorization has paid for this request before${generation}. ` +
        'Nothing more was charged; sign a new spend authorization for another answer.';
      return refuse(openAiError('spend_replay', { message }));
    }
    case 'bound': {
      const message =
        'The spend authorization was sent to its chain for a request that got no answer, and is public since then. ' +
        'This gateway does not collect it: its account can reclaim the amount after the expiry, if it landed. Sign a new ' +
        'spend authorization; one that is sent with an X-Payment-Secret can be sent again with the same one.';
      return refuse(openAiError('spend_replay', { message }));
    }
    case 'chain_unavailable':
      return refuse(openAiError('chain_unavailable'), { retryAfterSecs: 2 });
    case 'gas_too_expensive': {
      const message =
        'Landing the spend authorization costs too much gas now for its amount. Nothing was charged; ' +
        'send it again later, or sign a larger amount.';
      return refuse(openAiError('chain_unavailable', { message }), { retryAfterSecs: 60 });
    }
    case 'queue_full':
      return refuse(openAiError('overloaded'), { retryAfterSecs: 2 });
    case 'lane_full':
      return refuse(openAiError('overloaded'), { retryAfterSecs: 1 });
    case 'client_left':
      return refuse(openAiError('request_timeout'));
  }
}
