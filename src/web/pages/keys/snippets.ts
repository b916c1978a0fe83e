import { html, type Html } from '../../../base/values/html.ts';
import { snippet } from '../elements.ts';

/** Ready-made programs that ask a model; the key is in the environment, where it belongs. */
export function snippetsFor(publicUrl: string, model: string): Html {
  return html`${Object.entries(snippets).map(([label, write], index) => {
    const text = write(publicUrl, model);
    return html`<details ${index === 0 && html`open`}>
      <summary>${label}</summary>
      ${snippet(text, `the snippet for ${label}`)}
    </details>`;
  })}`;
}

/** A model's name has no quotes, so it needs no escaping. */
const snippets: Readonly<Record<string, (publicUrl: string, model: string) => string>> = {
  curl: (publicUrl, model) => curlFor(publicUrl, model),
  JavaScript: (publicUrl, model) => `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${publicUrl}/v1', apiKey: process.env.TOLLBOOK_KEY });
const answer = await client.chat.completions.create({
  model: '${model}',
  messages: [{ role: 'user', content: 'Hello' }],
});
console.log(answer.choices[0].message.content);`,
  Python: (publicUrl, model) => `import os
from openai import OpenAI

client = OpenAI(base_url="${publicUrl}/v1", api_key=os.environ["TOLLBOOK_KEY"])
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`,
};

/** Asks a model. `hasKey`: free models need none. */
export function curlFor(publicUrl: string, model: string, hasKey = true): string {
  return `curl ${publicUrl}/v1/chat/completions \\
${hasKey ? '  -H "Authorization: Bearer $TOLLBOOK_KEY" \\\n' : ''}  -H "Content-Type: application/json" \\
  -d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'`;
}
