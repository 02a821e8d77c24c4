<?php
function stuck_here($c) {
    return $c->receive();
}
$c = new Howdah\Channel();
$t = Howdah\go(fn () => stuck_here($c));
try {
    stuck_here($c);
} catch (Howdah\DeadlockError $e) {
    echo 'deadlock';
}
try {
    Howdah\await($t);
} catch (Howdah\DeadlockError $e) {
    echo ' twice';
}
