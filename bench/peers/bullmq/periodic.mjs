// One of the two processes of BullMQ: it puts a job scheduler for each schedule, which is the same
// for both, works on their jobs, and tells on stdout what package main reads of a process.
//
//   node periodic.mjs HOST PORT SCHEDULES CONCURRENCY
import { writeSync } from 'node:fs';
import { Queue, Worker } from 'bullmq';

const [host, port, schedules, concurrency] = process.argv.slice(2);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const tell = (...words) => writeSync(1, words.join(' ') + '\n');

const queue = new Queue('bench', { connection });
for (let i = 0; i < Number(schedules); i++) {
	try {
		await queue.upsertJobScheduler(String(i), { pattern: '* * * * * *' }, { name: 'run', data: { i } });
	} catch (err) {
		console.error(`put schedule ${i}: ${err.message}`); // its job is at work: the other process has put it
	}
}

const worker = new Worker('bench', async (job) => {
	const [, schedule, occurrence] = job.id.split(':');
	tell('ran', schedule, job.id, job.attemptsStarted || 1, Math.round((performance.timeOrigin + performance.now()) * 1000), occurrence);
}, { connection, concurrency: Number(concurrency) });
worker.on('error', (err) => console.error(err.message));
await worker.waitUntilReady();
tell('ready');

for (const signal of ['SIGINT', 'SIGTERM']) {
	process.once(signal, async () => {
		await worker.close();
		await queue.close();
		process.exit(0);
	});
}
