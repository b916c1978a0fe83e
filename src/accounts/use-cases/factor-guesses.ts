import type { AlertCondition } from '../../base/values/alert-condition.ts';
import { inBackground } from '../../base/runtime/background.ts';
import {
  forgetGuesses,
  type GuessSubject,
  listGuessed,
  takeGuess,
} from '../../ledger/store/factor-guesses.ts';
import { sendGuessMail } from './auth-mails.ts';
import type { Identity } from './context.ts';

/** The person who types the code of a second factor, after the password. */
export interface Guesser {
  readonly userId: string;
  readonly sessionId: string;
  /** Names the client, by its address. */
  readonly client: string;
  /** The id of a device on which the user has proven a second factor before. */
  readonly device: string | undefined;
}

/** From this many guesses of one origin on, the owner is notified by mail and the other operators on the overview. */
const toldGuesses = 5;
const account = 'account';

/**
 * The keys that count a guess. A person with the password can begin any number of sessions, so a code counts against the client and the
 * account as well; that would lock the owner out, so a device that has proven a second factor counts by itself. A recovery code, of 80
 * random bits, is not found by trying, and a new factor guesses at nothing: they count only by session.
 */
function subjectsOf(guesser: Guesser, what: 'code' | 'other'): readonly GuessSubject[] {
  const session = { subject: `session:${guesser.sessionId}`, free: 3 };
  if (what === 'other') return [session];
  if (guesser.device !== undefined) return [session, { subject: `device:${guesser.device}`, free: 5 }];
  return [session, { subject: guesser.client, free: 5 }, { subject: account, free: 20 }];
}

export type Guess =
  | {
      readonly kind: 'counted';
      /** The code was right: the count of its origin starts at zero. */
      right(): Promise<void>;
      /** It was not: the owner is notified if there were many wrong codes. */
      wrong(): void;
    }
  | { readonly kind: 'limited'; readonly waitSecs: number };

/** Counts a guess before it is looked at. */
export async function countGuess(
  identity: Identity,
  guesser: Guesser,
  what: 'code' | 'other',
): Promise<Guess> {
  const { pool } = identity;
  const { userId } = guesser;
  const subjects = subjectsOf(guesser, what);
  const { waitMs, guesses } = await takeGuess(pool, userId, subjects);
  if (waitMs > 0) return { kind: 'limited', waitSecs: Math.ceil(waitMs / 1_000) };
  const names = subjects.map(({ subject }) => subject);
  return {
    kind: 'counted',
    right: () => forgetGuesses(pool, userId, names, account),
    wrong() {
      if (what === 'code' && guesses === toldGuesses)
        inBackground(
          identity,
          sendGuessMail(identity, userId),
          'a mail about guessed codes could not be sent',
        );
    },
  };
}

/** Operators whose second factor somebody guesses at. */
export async function guessConditions({ pool }: Pick<Identity, 'pool'>): Promise<AlertCondition[]> {
  const guessed = await listGuessed(pool, toldGuesses);
  return guessed.map(({ name, guesses }) => ({
    kind: 'factor_guessed',
    subject: name,
    text:
      `Somebody who knows the password of the operator ${name} has typed ${guesses} wrong codes of the second factor. ` +
      'Ask the operator; if it was somebody else, the operator sets a new password.',
    details: { guesses },
  }));
}
