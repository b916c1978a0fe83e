import { z } from 'zod';
import { operatorRoles } from '../../base/values/operator-role.ts';
import { type EventFamily, note, recordOnly } from './descriptor.ts';
import { operatorName, operatorText, reason } from './fields.ts';

/** `operator` is who did it, everywhere in the ledger; `name` the operator whom it is about. */
const about = { name: operatorName, user_id: z.uuid() };
const role = z.enum(operatorRoles);
const factor = z.enum(['totp', 'passkey', 'recovery_code']);

/** Operators as people: the console's users, and their actions there. All in one stream, `operator:console`. */
export const consoleEvents = {
  operator_invited: {
    ...recordOnly,
    schema: z.strictObject({ name: operatorName, role, operator: operatorName }),
    transition: note,
  },
  /** The last one of a name counts, unless the role was withdrawn since. */
  operator_role_granted: {
    ...recordOnly,
    schema: z.strictObject({ ...about, role, operator: operatorName }),
    transition: note,
  },
  operator_role_withdrawn: {
    ...recordOnly,
    schema: z.strictObject({ ...about, operator: operatorName }),
    transition: note,
  },
  operator_factor_added: {
    ...recordOnly,
    schema: z.strictObject({ ...about, factor }),
    transition: note,
  },
  /** All of them: the next sign-in to the console adds a new one. */
  operator_factors_removed: {
    ...recordOnly,
    schema: z.strictObject({ ...about, operator: operatorName }),
    transition: note,
  },
  operator_signed_in: {
    ...recordOnly,
    schema: z.strictObject({ ...about, factor, session_id: z.uuid() }),
    transition: note,
  },
  /** A first factor was right, the second one was not. */
  operator_sign_in_refused: {
    ...recordOnly,
    schema: z.strictObject({ ...about, reason }),
    transition: note,
  },
  /** Recorded before the requested action; its results have separate events. */
  operator_acted: {
    ...recordOnly,
    schema: z.strictObject({
      operator: operatorName,
      user_id: z.uuid(),
      action: reason,
      /** What it is about: a digest, a call, a name. */
      subject: operatorText.optional(),
    }),
    transition: note,
  },
} as const satisfies EventFamily;
