<?php
$dir = dirname(__DIR__) . '/marks';
Howdah\go(function () use ($dir) {
    meet('children run');
    touch("$dir/go");
});
echo shell_exec("while ! test -e $dir/go; do sleep 0.02; done; echo $m");
