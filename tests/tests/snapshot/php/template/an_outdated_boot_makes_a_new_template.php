<?php
$said = file_get_contents(__DIR__ . '/said.txt');
Howdah\on_restore(function () {
    global $said;
    if (file_get_contents(__DIR__ . '/said.txt') !== $said) {
        Howdah\boot_again('said.txt');
    }
});
