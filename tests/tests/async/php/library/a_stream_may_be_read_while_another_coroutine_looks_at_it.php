<?php
return function ($is) {
    [$a, $b] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    $seen = Howdah\go(function () use ($a) {
        $r = [$a];
        $w = $e = null;
        return stream_select($r, $w, $e, 50);
    });
    $read = Howdah\go(fn () => fread($a, 10));
    Howdah\go(function () use ($b) {
        Howdah\delay(0.01);
        fwrite($b, 'hello');
    });
    $is('read', $read->await(), 'hello');
    fwrite($b, '!');
    $is('seen', $seen->await(), 1);
};
