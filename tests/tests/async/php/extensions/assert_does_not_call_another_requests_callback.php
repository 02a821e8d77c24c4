<?php
assert_options(ASSERT_CALLBACK, function () use ($m) {
    usleep(100);
    echo $m;
});
meet('a');
assert(strlen($m) === 0);
meet('b');
echo assert_options(ASSERT_CALLBACK) instanceof Closure ? '' : 'none';
