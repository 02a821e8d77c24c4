// Two users of laravel-echo with pusher-js, as Laravel's documentation sets them up for Reverb, and a server that publishes.
// Prints `all came` when each event has come where it should.
import { pathToFileURL } from 'node:url'
const [, , clients, port] = process.argv
const load = async (path) => (await import(pathToFileURL(`${clients}/node_modules/${path}`))).default
const Pusher = await load('pusher-js/dist/node/pusher.js')
const Echo = await load('laravel-echo/dist/echo.js')
const site = `http://127.0.0.1:${port}/app.php`

const open = (user) => new Echo({
    broadcaster: 'reverb', Pusher, key: 'the-key',
    wsHost: '127.0.0.1', wsPort: port, forceTLS: false, enabledTransports: ['ws'],
    authEndpoint: `${site}?do=auth&user=${user}`,
})
// The next value that a function is called with, within ten seconds.
const next = (what, register) => new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`${what} has not come`)), 10_000)
    register((value) => { clearTimeout(late); resolve(value) })
})
const same = (found, expected) => {
    if (JSON.stringify(found) !== JSON.stringify(expected)) {
        throw new Error(`${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`)
    }
}
const publish = async (channel, event, data, socket_id, more = '') => {
    const body = JSON.stringify({ name: event, channels: [channel], data: JSON.stringify(data), socket_id })
    const answer = await (await fetch(`${site}?do=api&path=events${more}`, { method: 'POST', body })).json()
    same(answer, { status: 200, body: '{}' })
}

const ann = open('ann')
await next('a connection', (done) => ann.connector.pusher.connection.bind('connected', done))
const news = ann.channel('news')
await next('a public channel', (done) => news.subscribed(done))
const order = next('an event', (done) => news.listen('OrderShipped', done))
await publish('news', 'App\\Events\\OrderShipped', { id: 7 })
same(await order, { id: 7 })

const orders = ann.private('orders.7')
await next('a private channel', (done) => orders.subscribed(done))
const paid = next('a private event', (done) => orders.listen('.paid', done))
await publish('private-orders.7', 'paid', { by: 'bob' })
same(await paid, { by: 'bob' })

// Encrypted by the application and decrypted by the client: the server sees neither the text nor the key.
const secret = ann.encryptedPrivate('medical')
await next('an encrypted channel', (done) => secret.subscribed(done))
const diagnosis = next('an encrypted event', (done) => secret.listen('.diagnosis', done))
await publish('private-encrypted-medical', 'diagnosis', { text: 'healthy' }, undefined, '&encrypt=1')
same(await diagnosis, { text: 'healthy' })

const room = ann.join('room')
same(await next('members', (done) => room.here(done)), [{ name: 'ANN' }])
const joining = next('a member', (done) => room.joining(done))
const bob = open('bob')
const other = bob.join('room')
same((await next('members', (done) => other.here(done))).map((user) => user.name).sort(), ['ANN', 'BOB'])
same(await joining, { name: 'BOB' })
const typing = next('a whisper', (done) => room.listenForWhisper('typing', done))
other.whisper('typing', { on: true })
same(await typing, { on: true })
// toOthers(): the one that has caused the event does not get it.
const seen = []
room.listen('.moved', (data) => seen.push(data.n))
const last = next('an event', (done) => other.listen('.moved', (data) => data.n === 2 && done(data)))
const own = next('an event', (done) => room.listen('.moved', (data) => data.n === 2 && done(data)))
await publish('presence-room', 'moved', { n: 1 }, ann.socketId())
await publish('presence-room', 'moved', { n: 2 })
await Promise.all([last, own])
same(seen, [2])
const leaving = next('a member that leaves', (done) => room.leaving(done))
bob.disconnect()
same(await leaving, { name: 'BOB' })
ann.disconnect()
console.log('all came')
process.exit(0)
