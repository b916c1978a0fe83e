import type { Fault } from './faults.ts';
import type { Answer, Reply } from './http-proxy.ts';
import type { Misfortune } from './misfortune.ts';

const badGateway: Answer = {
  status: 502,
  headers: { 'content-type': 'text/html' },
  body: Buffer.from('<html>Bad Gateway</html>'),
};
const garbage: Answer = {
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: Buffer.from('{"isValid": true, "success": tr'),
};

/** Lets an exchange suffer a fault that any peer can have. */
export async function sufferFault(
  fault: Fault,
  forward: () => Promise<Answer>,
  misfortune: Misfortune,
): Promise<Reply> {
  switch (fault.kind) {
    case 'delay':
      await misfortune.pause(fault.ms);
      return forward();
    case 'duplicate': {
      const [, second] = await Promise.all([forward(), forward()]);
      return second;
    }
    case 'cut_before':
      return 'cut';
    case 'error_before':
      return badGateway;
    case 'garbage_before':
      return garbage;
    case 'hang_before':
      return silence(misfortune);
    case 'late':
      await misfortune.pause(fault.ms);
      await forward();
      return 'cut';
    case 'cut_after':
      await forward();
      return 'cut';
    case 'error_after':
      await forward();
      return badGateway;
    case 'garbage_after':
      await forward();
      return garbage;
    case 'hang_after':
      await forward();
      return silence(misfortune);
    default:
      return forward();
  }
}

/** Says nothing while the misfortune lasts. */
async function silence(misfortune: Misfortune): Promise<Reply> {
  await misfortune.pause(60_000);
  return 'cut';
}
