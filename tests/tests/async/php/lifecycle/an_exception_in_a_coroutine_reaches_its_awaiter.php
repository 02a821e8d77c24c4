<?php
$t = Howdah\go(function () use ($m) {
    pause();
    throw new Exception("of $m");
});
try {
    Howdah\await($t);
} catch (Exception $e) {
    echo 'caught ', $e->getMessage();
    exit;
}
