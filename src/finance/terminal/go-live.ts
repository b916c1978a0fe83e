import { withAnchors, signerOf } from '../../audit/use-cases/log/configured-log.ts';
import type { Config } from '../../base/config/config.ts';
import { goLive } from '../use-cases/recovery/go-live.ts';
import { readOperator, readOperatorText } from '../../base/terminal/arguments.ts';
import { publishFirstCheckpoint } from '../../audit/terminal/first-checkpoint.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { fail, say } from '../../base/terminal/terminal.ts';

/** The operator that makes a database the ledger, and the reason. */
export interface GoLiveRequest {
  readonly operator: string;
  readonly why: string;
}

/** No default: a decision about money names the operator who made it. */
export function readGoLive(by: string | undefined, why: string | undefined): GoLiveRequest {
  return { why: readOperatorText(why, '--why is the reason'), operator: readOperator(by ?? '') };
}

/** Makes the database that DATABASE_URL names the ledger, and prints what happened. False if it was refused. */
export async function takeLive(config: Config, file: string, request: GoLiveRequest): Promise<boolean> {
  const signer = config.log && signerOf(config.log);
  return withLedger(async (ledger) => {
    const result = await withAnchors(config.log, (anchors) =>
      goLive(ledger, { ...request, signer, anchors }),
    );
    switch (result.kind) {
      case 'is_live':
        say('Gateways start live on this database: nothing was changed.');
        return true;
      case 'gateway_runs':
        fail(
          'A gateway that is live runs on this database: nothing was changed. Stop every such gateway, then run the command again.',
        );
        return false;
      case 'lossy': {
        const { keptSeq, lostTo } = result.loss;
        const lost = lostTo === undefined ? 'events' : `events up to ${lostTo}`;
        fail(
          `This database ends at event ${keptSeq}, and ${lost} are missing: nothing was changed. If they are lost for good, run ` +
            `\`tollbook recover --config ${file} --by ${request.operator}\`: it finds their payments, and the gateways start live after it.`,
        );
        return false;
      }
      case 'went_live':
        say(
          'This database is the ledger from now on. Gateways start live, and quiet ones go live within seconds.',
        );
        if (signer) await publishFirstCheckpoint(ledger.pool, config, signer);
        say(
          `Payments that it lacks, if there are any, are found by \`tollbook recover --config ${file} --by ${request.operator}\`: ` +
            'run it until its exit code is 0.',
        );
        return true;
    }
  });
}
