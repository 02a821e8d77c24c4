<?php
$off = fn () => E_ALL & ~error_reporting();
$level = fn () => $off() . ' ' . Howdah\await(Howdah\async($off));
