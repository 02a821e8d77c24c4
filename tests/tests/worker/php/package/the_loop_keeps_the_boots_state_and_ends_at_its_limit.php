<?php
$_SERVER['FROM_BOOT'] = 'kept';
$n = 0;
$loop = new Howdah\Runtime\Loop(3);
$ran = $loop->run(
    function () use (&$n) {
    $n++;
    if (isset($_GET['throw'])) {
        throw new Exception('thrown on purpose');
    }
    echo json_encode([$n, $_SERVER['FROM_BOOT'], $_SERVER['REQUEST_URI'], $_SERVER['SCRIPT_NAME'], Howdah\Runtime\Loop::isAvailable()]);
},
    fn () => mark('after-' . $_SERVER['QUERY_STRING']));
mark("ran-$ran");
