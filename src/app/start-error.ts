import { type DatabaseAddress, isDatabaseLoss } from '../ledger/store/database.ts';
import { SessionError } from '../ledger/store/session.ts';

/** Why a gateway did not start, as a sentence for the operator. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** The sentence for an error that an operator can do something about; any other error unchanged. */
export function explainStart(error: unknown, database: DatabaseAddress): unknown {
  if (!(error instanceof Error)) return error;
  const text = sentenceOf(error, database);
  return text === undefined ? error : new StartError(text, { cause: error });
}

type SystemError = Error & {
  readonly code?: string;
  readonly syscall?: string;
  readonly address?: string;
  readonly port?: number;
};

function sentenceOf(error: SystemError, { server, name, user }: DatabaseAddress): string | undefined {
  const { code = '' } = error;
  if (error instanceof SessionError) return `${error.message}.`;
  if (error.syscall === 'listen') return listenSentence(error);
  if (code.startsWith('28'))
    return (
      `The database at ${server} refuses the user ${user} (${code}). Check the user and the password in DATABASE_URL, or in PGPASSWORD; ` +
      'in the URL, #, @ and / in the password are written as %23, %40 and %2F.'
    );
  if (code === '3D000')
    return `The server at ${server} has no database ${name}. Create it, or correct DATABASE_URL.`;
  if (code === '53300')
    return `The database at ${server} takes no more connections (${code}). Raise its max_connections, or stop what uses them.`;
  if (code === '57P03')
    return `The database at ${server} is starting up or stopping (${code}). Start again later.`;
  if (isDatabaseLoss(error))
    return (
      `The database at ${server} cannot be used (${code || error.message}). Start it, let this machine reach it, or correct ` +
      'DATABASE_URL.'
    );
  return undefined;
}

function listenSentence({ code, address, port }: SystemError): string | undefined {
  const place = `${address ?? ''}:${port ?? ''}`;
  if (code === 'EADDRINUSE')
    return `The address ${place} is in use by another program. Stop that one, or choose another bind_address.`;
  if (code === 'EACCES')
    return `This user may not listen on ${place}. Choose a bind_address with a port of 1024 or above.`;
  if (code === 'EADDRNOTAVAIL') return `${place} is not an address of this machine. Correct bind_address.`;
  return undefined;
}
