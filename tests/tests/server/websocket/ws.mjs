// A connection of ws, Node's WebSocket client, to a script that sends everything back. Prints `all came` at the end.
import { pathToFileURL } from 'node:url'
const [, , clients, port] = process.argv
const { default: WebSocket } = await import(pathToFileURL(`${clients}/node_modules/ws/wrapper.mjs`))

const next = (socket, event) => new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no ${event}`)), 10_000)
    socket.once('error', reject)
    socket.once(event, (...values) => { clearTimeout(late); socket.off('error', reject); resolve(values) })
})
const same = (found, expected) => {
    if (found !== expected) throw new Error(`${found} instead of ${expected}`.slice(0, 300))
}
const address = `ws://127.0.0.1:${port}/echo.php`
for (const perMessageDeflate of [false, true]) {
    const socket = new WebSocket(address, { perMessageDeflate, headers: { 'X-Test': 'yes' } })
    await next(socket, 'open')
    same(socket.extensions.includes('permessage-deflate'), perMessageDeflate)
    // Short and long, text and binary; the last one is compressible.
    for (const data of ['hello', 'äöü', '', Buffer.from([0, 255, 128]), 'x'.repeat(70_000), Buffer.alloc(900_000, 'ab')]) {
        const back = next(socket, 'message')
        socket.send(data)
        const [bytes, isBinary] = await back
        same(isBinary, typeof data !== 'string')
        same(bytes.equals(Buffer.from(data)), true)
    }
    // A message in fragments, with a ping between them.
    const [back, pong] = [next(socket, 'message'), next(socket, 'pong')]
    socket.send('one ', { fin: false })
    socket.ping('between')
    socket.send('two', { fin: true })
    same(String((await pong)[0]), 'between')
    same(String((await back)[0]), 'one two')
    // Closed by the client, then by the server.
    const closed = next(socket, 'close')
    socket.close(4001, 'enough')
    same((await closed).join(' '), '4001 enough')
    const other = new WebSocket(address, { perMessageDeflate })
    await next(other, 'open')
    const ended = next(other, 'close')
    other.send('leave')
    same((await ended).join(' '), '4000 bye')
}
const refused = next(new WebSocket(`${address}?refuse`), 'unexpected-response')
same((await refused)[1].statusCode, 418)
console.log('all came')
process.exit(0)
