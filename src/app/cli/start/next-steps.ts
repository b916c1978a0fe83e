import path from 'node:path';
import type { DevnetDescription } from '../../../devnet/description.ts';

/** What to try next, as commands to copy. */
export function whatNext(dir: string, devnet: DevnetDescription): string {
  const relative = path.relative('.', dir);
  const isDefault = relative === '.tollbook';
  const { gateway_url: url } = devnet;
  return `
Open ${url} in a browser:
  demo login     ${demoLogin(devnet)}
  demo wallet    "Continue with your wallet" on the sign-in page; test tokens, on this devnet only
  or sign up: mails are files in ${relative}/mail
The operators' console is at ${url}/console:
  demo login     the same; then the code that this prints: npm run tollbook -- operators code${isDefault ? '' : ` --dir ${relative}`}

Try next, from another shell:
  npm run pay -- 1 0 'your text' ${isDefault ? '' : ` --dir ${relative}`}           pay for a job and read its result
  npm run pay -- 9 0 credit${isDefault ? '' : ` --dir ${relative}`}                 buy credit for chat, for the account of the paying wallet
  curl ${url}/x402/jobs/1/0/price    what a job costs
  curl ${url}/x402/stats             the public counters
  ${relative}/devnet.json                     keys and addresses for clients
${modelCalls(devnet)}
Ctrl-C stops everything; the next start continues with this state, \`npm start -- --fresh\` deletes its state first.`;
}

function demoLogin({ demo_user: { email, password } }: DevnetDescription): string {
  return password === undefined
    ? `${email}, whose password was changed: "Forgotten?" on the sign-in page sets another one`
    : `${email}, password ${password}`;
}

/** One request for each kind of caller. */
function modelCalls({ gateway_url: url, routing }: DevnetDescription): string {
  const { free_model: free, paid_model: paid } = routing;
  const call = (what: string, body: object, key?: string): string => {
    const json = JSON.stringify({ ...body, messages: [{ role: 'user', content: 'hello, model' }] });
    const bearer = key === undefined ? '' : ` -H 'authorization: Bearer ${key}'`;
    return `  # ${what}\n  curl -N ${url}/v1/chat/completions -H 'content-type: application/json'${bearer} -d '${json}'`;
  };
  return `
Ask a model, with any OpenAI client and the base URL ${url}/v1:
${call('without a credential, on a model of the free tier', { model: free })}
${call('an API key with credit, as a stream', { model: paid, stream: true }, routing.api_key_funded)}
${call('an API key without credit, on a paid model: 402', { model: paid }, routing.api_key_empty)}
`;
}
