// A process of the workload workflows of BullMQ: a worker, or the one that submits.
//
//   node flows.mjs work HOST PORT CONCURRENCY HOLD_MS
//   node flows.mjs submit HOST PORT KIND SIZE
//
// See flowBook and flowStage of package main for what it tells and is told. A chain is a job with one
// child, which has one child, and so on; a fan-out is a job with many. Children are worked on first.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { FlowProducer, Worker } from 'bullmq';

const [what, host, port, ...rest] = process.argv.slice(2);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const tell = (...words) => writeSync(1, words.join(' ') + '\n');
const now = () => Math.round((performance.timeOrigin + performance.now()) * 1000);
const queueName = 'flows';

if (what === 'work') {
	const [concurrency, hold] = rest.map(Number);
	const worker = new Worker(queueName, async (job) => {
		const began = now();
		if (hold > 0) await sleep(hold);
		tell('ran', job.data.flow, job.data.handler, began, now());
	}, { connection, concurrency });
	worker.on('error', (err) => console.error(err.message));
	await worker.waitUntilReady();
	tell('ready');
	process.once('SIGTERM', async () => {
		await worker.close();
		process.exit(0);
	});
} else {
	const [kind, size] = [rest[0], Number(rest[1])];
	const job = (flow, handler, children) => ({ name: String(handler), queueName, data: { flow, handler }, children });
	const chain = (flow) => {
		let tree;
		for (let i = 0; i < size; i++) tree = job(flow, i, tree && [tree]);
		return tree;
	};
	const fanout = (flow) => job(flow, size, Array.from({ length: size }, (_, i) => job(flow, i)));
	const flows = new FlowProducer({ connection });
	await flows.waitUntilReady();
	createInterface({ input: process.stdin }).on('line', (flow) => {
		flows.add(kind === 'chain' ? chain(flow) : fanout(flow)).catch((err) => {
			console.error(`submit ${flow}: ${err.message}`);
			process.exit(1);
		});
	});
	tell('ready');
	process.once('SIGTERM', async () => {
		await flows.close();
		process.exit(0);
	});
}
