<?php
$order = ['boot'];
Howdah\on_restore(function () use (&$order) {
    $order[] = 'restored ' . ($_GET['n'] ?? '');
});
$order[] = Howdah\snapshot() ? 'taken' : 'refused';
$order[] = 'again ' . json_encode(Howdah\snapshot());
