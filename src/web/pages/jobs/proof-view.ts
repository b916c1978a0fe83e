import { html, type Html } from '../../../base/values/html.ts';
import { visibleText } from '../../../base/values/visible-text.ts';
import type { Receipt } from '../../../jobs/http/schemas/receipt.ts';
import { type Column, copyButton, count, factList, shortId, snippet, table } from '../elements.ts';

type LogProof = NonNullable<Receipt['log_proof']>;

/** The proofs that a settlement is in the log, and how to check them without this gateway. */
export function proofView(receipt: Receipt, receiptUrl: string): Html {
  const { log_proof: proof, log_proof_reason: reason } = receipt;
  const body = proof ? provenView(proof, receiptUrl) : html`<p class="muted">${whyNot(reason)}</p>`;
  return html`<details class="sheet">
    <summary>Proof in the log</summary>
    ${body}
  </details>`;
}

function whyNot(reason: Receipt['log_proof_reason']): string {
  switch (reason) {
    case 'not_settled':
      return 'There is no proof before the payment has settled.';
    case 'not_sealed':
      return 'The next signed head of the log covers the settlement. Look again in a moment.';
    case undefined:
      return 'This ledger is not sealed, so that there is no log to prove it with.';
  }
}

function provenView(proof: LogProof, receiptUrl: string): Html {
  const columns: Column<LogProof['proofs'][number]>[] = [
    { label: 'Leaf', cell: ({ seq }) => count(seq - 1) },
    { label: 'Its hash', cell: ({ leaf_hash: hash }) => shortId(hash, 'the hash of the leaf') },
    { label: 'Hashes to the root', isNumber: true, cell: ({ hashes }) => count(hashes.length) },
  ];
  const commands = `curl -s ${receiptUrl} > receipt.json
tollbook verify --receipt receipt.json --pubkey PUBLIC_KEY`;
  return html`<p>
      The gateway has recorded this payment in its log, and has signed the log. Anyone who keeps a signed head
      of the log can notice if the operator removes or changes the record.
    </p>
    ${factList([
      ['Tree size', count(proof.tree_size)],
      ['Root', shortId(proof.root_hash, 'the hash of the root')],
    ])}
    ${table('Events of the settlement', columns, proof.proofs)}
    ${proof.pending > 0 && html`<p class="hint">The next head covers ${count(proof.pending)} more.</p>`}
    <details>
      <summary>The checkpoint</summary>
      <div class="snippet">
        <pre class="code" tabindex="0"><code>${visibleText(proof.checkpoint)}</code></pre>
        ${copyButton(proof.checkpoint, 'the checkpoint')}
      </div>
    </details>
    <details>
      <summary>Check it yourself</summary>
      <p>
        The second command checks the proof with the log’s public key, which the operator publishes, and
        without a connection:
      </p>
      ${snippet(commands, 'the commands')}
    </details>`;
}
