// Starts it as `npx @portkey-ai/gateway` does, without its log page. It always listens on every interface.
import { freePort } from '../../src/devnet/ports.ts';

const port = await freePort();
process.argv.push('--headless', `--port=${port}`);
await import('@portkey-ai/gateway/build/start-server.js');

process.on('disconnect', () => process.exit());
process.send?.({ url: `http://127.0.0.1:${port}` });
