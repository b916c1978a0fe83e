// As `npx @portkey-ai/gateway` starts it, without its page of logs. It listens on every interface: it has no other way.
import { freePort } from '../../src/devnet/ports.ts';

const port = await freePort();
process.argv.push('--headless', `--port=${port}`);
await import('@portkey-ai/gateway/build/start-server.js');

process.on('disconnect', () => process.exit());
process.send?.({ url: `http://127.0.0.1:${port}` });
