import type { AnchorConfig } from '../../../base/config/config.ts';
import type { Anchor } from './anchor.ts';
import { chainAnchor, originHash } from './chain-anchor.ts';
import { folderAnchor } from './folder-anchor.ts';
import { s3Anchor } from './s3-anchor.ts';
import { createWebhook } from '../../../base/peers/http/webhook.ts';

const timeoutMs = 10_000;

/** A client of one configured anchor. */
export function createAnchor(config: AnchorConfig): Anchor {
  switch (config.kind) {
    case 'folder':
      return folderAnchor(config);
    case 's3':
      return s3Anchor(config);
    case 'webhook':
      return webhookAnchor(config);
    case 'chain':
      return chainAnchor(config);
  }
}

function webhookAnchor(config: Extract<AnchorConfig, { kind: 'webhook' }>): Anchor {
  const webhook = createWebhook({ ...config, timeoutMs });
  return {
    name: config.name,
    everyMs: config.everyMs,
    place: `the webhook at ${new URL(config.url).host}`,
    isFree: true,
    publish({ origin, size, note }) {
      return webhook
        .send({
          // a later generation of the log may sign a size again, under another name
          id: `checkpoint-${originHash(origin).slice(2, 18)}-${size}`,
          timestampSecs: Math.floor(Date.now() / 1_000),
          body: JSON.stringify({ type: 'checkpoint', origin, size, checkpoint: note }),
        })
        .then((answer) => (answer.kind === 'delivered' ? { kind: 'done' } : answer));
    },
    newest: undefined,
    close: () => webhook.close(),
  };
}
