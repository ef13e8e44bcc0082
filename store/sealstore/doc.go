// Package sealstore encrypts what users wrote before a store keeps it: a Store is any other one, whose
// files, dumps and replicas do not show it.
//
//	masters, err := sealstore.ParseMasters(text)  // of --encryption-key
//	keys, err := sealstore.OpenKeys(ctx, inner, masters, sealstore.Config{Node: "a"}, log)
//	st := sealstore.New(inner, keys, log)
//
// # What is sealed
//
// Payloads, results, error texts, what an ack says, the data of a recipient, the input of a workflow and
// the results that a step gets, what names of a journal returned, and the bodies of cells and parcels:
// so templates of schedules, recipients and the state of workflows. Ids, topics, attributes, keys of any kind,
// names of workers, steps and journals, and times stay as they are: a store finds and sorts by them. The
// log of changes has nothing else.
//
// # Form
//
//	4 id of the data key | 12 nonce, random | ciphertext | 16 tag
//
// AES-256-GCM, and the topic for associated data. It is not the id of the task: a task that replaces another
// one is stored under the id of that. So whoever can write to the store may exchange bodies of a topic, and
// put back old ones, and is not noticed.
//
// That a payload is sealed is said beside it, in Task.Encrypted, and so with journals; a store keeps that. In front
// of everything else is a byte 0xF6, with which no UTF-8 and no protobuf begins, and the last byte of a key's id
// follows from the three others. What does not begin like that was stored before there were keys, and is read as
// it is. What users stored then cannot be taken for sealed: for that it had to name a key that was made
// later, at random. A result or error text of those days that begins like that and names no key is not
// shown, until its task is gone: of random bytes one in 65,536.
//
// # Keys
//
// A data key is a record of the registry, of kind "datakey", under its id. It is wrapped by a master key, which is
// in no store. A process makes one when it starts, and one more for every 2^30 seals. A record is there before
// the key is used, and whoever meets an id that he does not know reads the records again.
//
// # What cannot be read
//
//   - The key is not known. It may come late, so nothing is given up: a task that is held goes back for
//     30 seconds, with the attempt uncounted, and other calls are refused with ErrUnknownKey. Keys.Ready
//     says so for a minute.
//   - The key is known, and the bytes are not what it sealed: a task that is held is a dead letter, of
//     ReasonCorrupt. The end of a task, as its cell is told, is that, too. A cell or a parcel is returned
//     as it is, which is no body of anything.
//
// Get and List return a task that cannot be read with Encrypted set; an Edit with such a task is refused.
package sealstore
