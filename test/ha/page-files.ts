import { readPage } from '../support/pages.ts';

/** The configuration files of the page, with this machine's addresses and directories in place of the page's. */
export interface PageFiles {
  readonly etcd: Readonly<Record<string, string>>;
  readonly patroni: string;
  readonly haproxy: string;
}

export interface Place {
  readonly name: string;
  readonly address: string;
  /** A network of loopback addresses in place of the page's, such as `127.1.2.` for `10.0.0.`. */
  readonly network: string;
  /** Stands for `/` of the node: its `/var` is below it. */
  readonly root: string;
  readonly plant?: PlantName | undefined;
}

/**
 * Changes to Patroni's file that lose acknowledged payments, to show that a run finds them. Over etcd's version 3 interface
 * Patroni 3.0.2 overwrites the leader key of another node when it continues after a pause; 3.0.3 does not.
 */
export const plants = { etcd3: ['\netcd:\n', '\netcd3:\n'] } as const;
export type PlantName = keyof typeof plants;

/** The ports of the page are used as they are: each run has its own addresses. */
export const ports = { postgres: 5432, patroni: 8008, haproxy: 5000 } as const;

const [etcdText = '', haproxyText = ''] = blocksOf('conf');
const [patroniText = ''] = blocksOf('yaml');

function blocksOf(language: string): string[] {
  const { blocks } = readPage('docs/operations/high-availability.md');
  return blocks.filter((block) => block.language === language).map(({ text }) => text);
}

/** A text of the page with the addresses and directories of a place. */
export function placed(text: string, { name, address, network, root }: Omit<Place, 'plant'>): string {
  return text
    .replaceAll('10.0.0.', network)
    .replaceAll('127.0.0.1:', `${address}:`)
    .replaceAll(/\bADDRESS\b/g, address)
    .replaceAll(/\bNAME\b/g, name)
    .replaceAll('/var/', `${root}/var/`);
}

export function pageFiles({ plant, ...place }: Place): PageFiles {
  const variables = [...placed(etcdText, place).matchAll(/^(\w+)=(.*)$/gm)];
  return {
    etcd: Object.fromEntries(variables.map(([, key = '', value = '']) => [key, value])),
    patroni: plant ? placed(patroniText, place).replace(...plants[plant]) : placed(patroniText, place),
    haproxy: placed(haproxyText, place),
  };
}
