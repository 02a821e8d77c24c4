<?php
// A class that is incompatible with its parent, one that lacks an interface method, and one of both kinds with a trait and
// properties.
interface Inner { const A = 1; function inner(); }
trait Part { public $part = 'x'; function part() { return 'part'; } }
class Outer implements Inner, IteratorAggregate {
    protected array $kept = [1];
    static $shared = [2];
    function inner() {}
    function getIterator(): Iterator { return new ArrayIterator([]); }
}
return [
    fn () => new class extends ArrayObject { private string $a = 'x'; function offsetGet($k, $more): mixed { return 1; } },
    fn () => new class implements IteratorAggregate, Countable { function count(): int { return 1; } },
    fn () => new class extends Outer implements Countable { use Part; protected int $own = 3; public int $other = 4; },
];
